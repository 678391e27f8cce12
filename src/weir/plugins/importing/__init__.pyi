from weir.plugins.importing.importer import ImportReport as ImportReport
from weir.plugins.importing.importer import import_files as import_files
from weir.plugins.importing.importer import import_request as import_request
from weir.plugins.importing.importer import request_for as request_for
from weir.plugins.importing.items import Choices as Choices
from weir.plugins.importing.references.reference import request_of as request_of
