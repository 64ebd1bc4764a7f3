"""The scripts of users in this folder are read and run by a test, and not collected."""

collect_ignore = ["calibration.py", "regressor.py", "wrong.py"]
