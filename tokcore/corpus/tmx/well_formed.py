"""Whether a stream is XML that may be read: expat says so, piece by piece, and holds none of it.

expat does not run ahead: what is well-formed up to here is given on, and the first byte that is not
ends the job. What would expand into more than was written, or be fetched, is refused where it is
declared; a document type that only names a DTD is passed over, and nothing is fetched.
"""

from xml.parsers import expat

from tokcore.errors import InputError

_ENCODINGS = {'utf-8', 'utf8', 'us-ascii', 'ascii', 'utf-16'}


class WellFormedXml:
    """Takes the pieces of one file, whose outermost element is `root`; `path` is for errors."""

    def __init__(self, path: str, root: str):
        self._path, self._root = path, root
        self._parser = expat.ParserCreate()
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._document_type
        self._parser.StartElementHandler = self._outermost

    def take(self, piece: bytes) -> None:
        """Raises InputError where the XML is not well-formed, or not to be read."""
        self._parse(piece, False)

    def end(self) -> None:
        """Raises InputError if the XML is not whole."""
        self._parse(b'', True)

    def _parse(self, piece: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            hint = 'is the file whole? ' if is_last else ''
            raise InputError(
                f'{self._path} is no well-formed XML: {what} at byte {self._place} of its text; '
                f'{hint}mend it there, as `xmllint --noout` would show'
            ) from None

    @property
    def _place(self) -> int:
        return max(self._parser.ErrorByteIndex, 0)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() not in _ENCODINGS:
            raise InputError(
                f'{self._path} is declared to be {encoding[:40]}, and TMX is read as UTF-8 or UTF-16; '
                'convert it with iconv, and the declaration with it'
            )

    def _outermost(self, name: str, attributes: dict[str, str]) -> None:
        # A call for each element would take longer than all else.
        self._parser.StartElementHandler = None
        if name != self._root:
            raise InputError(
                f'{self._path} is XML of <{name[:40]}> and not of <{self._root}>; give another format'
            )

    def _document_type(
        self, name: str, system: str | None, public: str | None, has_declarations: int
    ) -> None:
        if has_declarations:
            raise InputError(
                f'{self._path} has declarations in its document type, as of entities, and these are '
                'not read; take out what stands there in [brackets]'
            )
