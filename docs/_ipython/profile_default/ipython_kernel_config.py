"""Settings of the kernel that runs the code cells of the pages."""

c = get_config()  # noqa: F821

c.HistoryManager.enabled = False
c.IPKernelApp.log_level = 40  # errors; it warns that it talks over a local port
c.InlineBackend.rc = {"figure.dpi": 110}
c.InlineBackend.print_figure_kwargs = {}  # figures as they were laid out
# No signs of life in the pages, however busy the machine.
progress = "__import__('sigmascale._support.progress', fromlist=[''])"
c.InteractiveShellApp.exec_lines = [f"{progress}.SECONDS_OF_PATIENCE = 1e9"]
