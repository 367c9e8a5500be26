from lodl.report import Cell
from lodl_benchmarks.pages import MeanStd, mean_cell, method_colours


def test_a_published_number_stands_in_brackets_with_a_star_where_it_differs():
    ours = MeanStd(0.5, 0.1)
    assert mean_cell(ours) == Cell("0.50 ± 0.10", 0.5)
    assert mean_cell(ours, MeanStd(0.6, 0.1)).text == "0.50 ± 0.10 (0.60 ± 0.10)"
    assert mean_cell(ours, MeanStd(0.9, 0.1)).text == "0.50 ± 0.10 (0.90 ± 0.10) *"
    assert mean_cell(None) == Cell("")


def test_a_method_has_the_same_colour_whatever_stands_beside_it():
    assert method_colours(["NN", "mine"])["NN"] == method_colours(["2-stage", "NN"])["NN"]
    ours = method_colours(["DFL", "NN", "Quadratic", "ConvexDirectedQuadratic", "mine", "yours"])
    assert len(set(ours.values())) == 6
