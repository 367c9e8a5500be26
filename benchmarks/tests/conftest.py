"""One thread per process: small arrays gain nothing from more, and two test runs do not fight."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by torch and by BLAS when they are loaded
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # LightGBM's threads wait without spinning
