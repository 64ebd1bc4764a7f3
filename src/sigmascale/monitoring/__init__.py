"""Watch rows as they arrive for drift, for as long as one likes."""

from .monitor import Alarm, Monitor, MonitorState, over_time

__all__ = ["Alarm", "Monitor", "MonitorState", "over_time"]
