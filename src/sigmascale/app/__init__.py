"""The app: what the command line does, as a page in the browser of this machine.

Three parts. The *server* (`server`, `guard`, `site`, `session`) answers the browser,
loads no table and computes nothing. The *worker* (`worker`, `orders`) is a process that
runs the commands that `commands` has made of the page's orders; it can be killed at any
time. The *page* (`page/`) is HTML, CSS and JavaScript as they are; `views` are what it
shows.
"""
