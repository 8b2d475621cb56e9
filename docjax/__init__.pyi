from docjax import config as config
from docjax.errors import UserError as UserError
from docjax.main import train as train
from docjax.model.document_model import DocumentModel as DocumentModel
from docjax.model.load import load as load
from docjax.types import Document as Document
from docjax.types import Section as Section

__all__ = [
    "Document",
    "DocumentModel",
    "Section",
    "UserError",
    "config",
    "load",
    "train",
]
__version__: str
