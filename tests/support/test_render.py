from sigmascale._support.render import (
    WIDTH,
    as_table,
    latex_table,
    shorten,
    text_table,
)


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


HEADER, ROWS = ["", "S_u", "valid %"], [["a|b & <Z²>", "-1.20 ± 0.10", "-"]]


def test_what_latex_takes_for_a_command_is_escaped():
    assert latex_table(HEADER, ROWS).splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r" & S\_u & valid \% \\",
        r"\midrule",
        r"a|b \& $<$Z$^2$$>$ & $-$1.20 $\pm$ 0.10 & - \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    specials = "\\~^{}#$…"
    cell = latex_table([specials], []).splitlines()[2]
    assert cell == (
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{\}\#\$\ldots{} \\"
    )


def test_a_table_comes_in_each_format():
    assert as_table(HEADER, ROWS, "text") == text_table(HEADER, ROWS)
    assert as_table(HEADER, ROWS, "latex") == latex_table(HEADER, ROWS)
    assert as_table(HEADER, ROWS, "markdown").splitlines() == [
        "|  | S_u | valid % |",
        "| --- | --- | --- |",
        r"| a\|b & <Z²> | -1.20 ± 0.10 | - |",
    ]
