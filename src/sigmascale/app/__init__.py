"""The app: what the command line does, as a page in the browser of this machine.

Three parts. The *server* (`serving`, `site`, `guard`) answers the browser, loads no
table and computes nothing. The *worker* (`worker`, `bench`) is a child process that
does what the commands do, by the same functions, and can be killed at any time. The
*page* (`page/`) is HTML, CSS and JavaScript as they are.
"""
