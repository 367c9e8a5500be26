"""Settings of every test process.

One thread: small arrays gain nothing from more, and two test runs do not fight. No garbage
collection of what imports leave, which is half a million objects that stay.
"""

import gc
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and by BLAS when they are loaded
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # LightGBM's threads wait without spinning
gc.disable()


def pytest_collection_finish(session):
    gc.collect()
    gc.freeze()
    gc.enable()
