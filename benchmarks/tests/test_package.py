import subprocess
import sys
from graphlib import TopologicalSorter

import grimp


def test_pages_of_the_paper_are_drawn_without_torch():
    code = "import sys, lodl_benchmarks.paper; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_no_module_imports_itself_by_a_detour():
    graph = grimp.build_graph("lodl_benchmarks", cache_dir=None)
    imports = {
        module: [
            other
            for other in graph.find_modules_directly_imported_by(module)
            if not module.startswith(f"{other}.")
        ]
        for module in graph.modules
    }
    TopologicalSorter(imports).prepare()  # raises a CycleError that names the modules
