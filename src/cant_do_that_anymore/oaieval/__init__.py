"""The command ``oaieval`` of the original eval, with its solvers and record files."""
