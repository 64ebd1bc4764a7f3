"""The process that works for the app."""

import asyncio

from sigmascale.app.worker import Worker


def test_a_process_that_was_stopped_after_its_answer_is_replaced(tmp_path):
    async def stop_too_late():
        worker = Worker(tmp_path, largest=1 << 20)
        await worker.warm_up()
        worker.stop()
        files, _ = await worker.do("demo", folder=".")
        await worker.end()
        return files

    files = asyncio.run(stop_too_late())
    assert all((tmp_path / name).is_file() for name in files.values())
