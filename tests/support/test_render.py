from sigmascale._support.render import WIDTH, shorten, text_table


def test_a_table_that_is_too_wide_goes_on_below():
    header = ["method", *(f"column {i}" for i in range(10))]
    rows = [[name, *(f"{name}{i}" for i in range(10))] for name in ("a", "bb")]
    blocks = text_table(header, rows).split("\n\n")
    assert len(blocks) == 2
    shown = []
    for block in blocks:
        first, line, *below = block.splitlines()
        assert first.startswith("method  ")
        assert set(line) == {"-"}
        assert max(map(len, (first, line, *below))) <= WIDTH
        numbers = [number.strip() for number in first.split("column")[1:]]
        assert [row.split() for row in below] == [
            [name, *(f"{name}{number}" for number in numbers)] for name in ("a", "bb")
        ]
        shown += numbers
    assert shown == [str(i) for i in range(10)]


def test_a_table_that_just_fits_is_one_block():
    assert "\n\n" not in text_table(["a", "b" * (WIDTH - 3)], [["1", "2"]])
    assert "\n\n" not in text_table(["a", "b" * 200], [["1", "2"]])  # no way to fold
    assert "\n\n" in text_table(["a", "b" * (WIDTH - 5), "c"], [["1", "2", "3"]])


def test_names_are_shortened_to_fit():
    assert shorten("heteroatoms", 9) == "heteroat…"
    assert shorten("mass", 9) == "mass"
