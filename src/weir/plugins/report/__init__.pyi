from weir.plugins.report.paper import published_tables as published_tables
from weir.plugins.report.report import write_tables as write_tables
