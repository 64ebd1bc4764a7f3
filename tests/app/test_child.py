"""The process that works for the app."""

import asyncio

from sigmascale.app.child import Child


def test_a_process_that_was_stopped_after_its_answer_is_replaced(tmp_path):
    async def stop_too_late():
        child = Child(tmp_path, largest=1 << 20)
        await child.warm_up()
        child.stop()
        files, _ = await child.do("demo")
        await child.end()
        return files

    files = asyncio.run(stop_too_late())
    assert all((tmp_path / name).is_file() for name in files.values())
