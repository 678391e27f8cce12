from weir.plugins.importing.importer import ImportReport as ImportReport
from weir.plugins.importing.importer import import_files as import_files
from weir.plugins.importing.items import Choices as Choices
