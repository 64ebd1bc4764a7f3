"""Watch rows as they arrive for drift, for as long as one likes."""

from .alarms import Alarm, MonitorState
from .follower import Follower
from .monitor import Monitor, over_time

__all__ = ["Alarm", "Follower", "Monitor", "MonitorState", "over_time"]
