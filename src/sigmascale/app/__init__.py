"""The app: what the command line does, as a page in the browser of this machine.

The *server* (`server`, `guard`, `site`, `session`, `uploads`) answers the browser,
reads no table and computes nothing. The *worker* (`worker`, `orders`) is a process that
runs the commands whose fields the page has sent; it can be killed at any time. The
*page* (`page/`) is HTML, CSS and JavaScript as they are.
"""
