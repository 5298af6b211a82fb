"""halfscope reads the records of training runs and draws them: results, plots, report."""
