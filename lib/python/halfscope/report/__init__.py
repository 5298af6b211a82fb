"""Reports of results: one page with the tables and figures of every experiment in a folder."""

from halfscope.report.page import report_page, write_report

__all__ = ["report_page", "write_report"]
