"""Watch rows as they arrive for drift, for as long as one likes."""

from .follower import Follower
from .monitor import Alarm, Monitor, MonitorState, over_time

__all__ = ["Alarm", "Follower", "Monitor", "MonitorState", "over_time"]
