"""Which of ruff's rules point at mistakes rather than at taste, how heavy each is, and why it matters."""

from __future__ import annotations

from teams_cli.extensions.review.findings import NOTE, SERIOUS, WARNING

NAMES = {
    "F821": (SERIOUS, "it fails when this line runs"),
    "F822": (SERIOUS, "importing * fails"),
    "F823": (SERIOUS, "it fails when this line runs"),
    "F811": (WARNING, "the earlier definition is lost"),
    "F401": (NOTE, ""),
    "F841": (NOTE, ""),
    "F402": (WARNING, "the import is lost"),
    "F403": (NOTE, ""),
}
MISTAKES = {
    "B002": (WARNING, "Python has no increment"),
    "B003": (WARNING, "the environment does not change by it"),
    "B005": (WARNING, "it strips these characters in any order, not the word"),
    "B006": (WARNING, "all calls share it"),
    "B008": (WARNING, "it is called once, when the function is defined"),
    "B012": (WARNING, "it swallows the exception"),
    "B014": (NOTE, ""),
    "B015": (WARNING, "its result is not used"),
    "B016": (SERIOUS, "only exceptions can be raised"),
    "B017": (NOTE, "any mistake in the test passes it"),
    "B018": (WARNING, "it has no effect"),
    "B019": (NOTE, "the cache keeps every object alive"),
    "B020": (WARNING, ""),
    "B021": (WARNING, "it is not a docstring"),
    "B022": (WARNING, "it has no effect"),
    "B023": (WARNING, "all functions see its last value"),
    "B025": (WARNING, "the second is never reached"),
    "B029": (WARNING, "it catches nothing"),
    "B030": (SERIOUS, "it fails when an exception comes"),
    "B031": (WARNING, "the group is used up after the first time"),
    "B032": (WARNING, "it assigns nothing"),
    "B033": (NOTE, ""),
    "B035": (WARNING, "each round overwrites the one before"),
    "B909": (WARNING, "items are skipped"),
    "DTZ003": (NOTE, "it has no time zone, and goes with a later Python; use now(UTC)"),
    "DTZ004": (NOTE, "it has no time zone, and goes with a later Python; use fromtimestamp(…, UTC)"),
    "E711": (NOTE, ""),
    "E712": (NOTE, ""),
    "E713": (NOTE, ""),
    "E714": (NOTE, ""),
    "E721": (NOTE, ""),
    "E722": (WARNING, "it catches KeyboardInterrupt and SystemExit, too"),
    "F502": (SERIOUS, "it fails when this line runs"),
    "F50": (SERIOUS, "it fails when this line runs"),
    "F52": (SERIOUS, "it fails when this line runs"),
    "F541": (NOTE, "perhaps the braces are missing"),
    "F601": (WARNING, "the first value is lost"),
    "F602": (WARNING, "the first value is lost"),
    "F631": (SERIOUS, "it never fails, since the tuple is not empty"),
    "F632": (WARNING, "it compares identity; use =="),
    "F633": (SERIOUS, "it prints nothing"),
    "F634": (SERIOUS, "it is always true, since the tuple is not empty"),
    "F70": (SERIOUS, "it does not compile"),
    "F901": (SERIOUS, "it raises a TypeError; use NotImplementedError"),
    "ISC004": (WARNING, "a comma is missing, or they are one text"),
    "N805": (WARNING, "the first argument of a method is the object"),
    "PLE0704": (NOTE, "it fails unless an exception is being handled"),
    "PLE": (SERIOUS, ""),
    "PLR0124": (WARNING, "it compares a thing with itself"),
    "PLR0133": (WARNING, "it compares two constants"),
    "PLR0206": (SERIOUS, "nobody can give it a value, so reading it fails"),
    "PLW0120": (NOTE, "it always runs"),
    "PLW0127": (WARNING, "it has no effect"),
    "PLW0128": (WARNING, "the first value is lost"),
    "PLW0129": (SERIOUS, "it never fails"),
    "PLW0131": (WARNING, ""),
    "PLW0133": (SERIOUS, "`raise` is missing"),
    "PLW0177": (WARNING, "it is never true"),
    "PLW0211": (WARNING, "it is given no object"),
    "PLW0245": (SERIOUS, "it is not called"),
    "PLW0406": (WARNING, ""),
    "PLW0711": (SERIOUS, "it catches the first only"),
    "PLW1501": (SERIOUS, "opening it fails"),
    "PLW1508": (WARNING, ""),
    "PIE794": (WARNING, "the first value is lost"),
    "PIE796": (WARNING, "it is another name for the first"),
    "RUF008": (SERIOUS, "all objects share it"),
    "RUF009": (WARNING, "it is called once, when the class is defined"),
    "RUF016": (SERIOUS, "it fails when this line runs"),
    "RUF018": (WARNING, "with -O the assignment is gone, too"),
    "RUF024": (WARNING, "all keys share it"),
    "RUF027": (WARNING, "it is printed with the braces"),
    "RUF034": (WARNING, ""),
    "RUF040": (WARNING, ""),
    "S110": (WARNING, "errors vanish without a trace"),
    "S112": (WARNING, "errors vanish without a trace"),
    "SIM115": (NOTE, "it may stay open"),
    "SIM220": (WARNING, "it is always false"),
    "SIM221": (WARNING, "it is always true"),
    "SIM222": (WARNING, "it is always true"),
    "SIM223": (WARNING, "it is always false"),
    "TRY203": (NOTE, ""),
    "W605": (WARNING, "it will be a syntax error"),
    "ASYNC": (WARNING, "it stops all other tasks meanwhile"),
    "RUF006": (NOTE, "the task may vanish before it is done"),
}
DANGERS = {
    "S102": (SERIOUS, "whoever can choose the text runs code"),
    "S103": (WARNING, "others may change it"),
    "S104": (NOTE, "all networks can reach it"),
    "S108": (WARNING, "others can foresee the name; use tempfile"),
    "S113": (WARNING, "it may wait for ever"),
    "S201": (SERIOUS, "whoever reaches it runs code"),
    "S202": (WARNING, "it may write outside the directory"),
    "S301": (WARNING, "whoever can choose the data runs code"),
    "S302": (WARNING, "whoever can choose the data crashes or misuses the program"),
    "S304": (WARNING, "it can be broken; use AES"),
    "S305": (WARNING, "equal blocks are seen to be equal; use GCM"),
    "S306": (WARNING, "another process can take the name first; use mkstemp"),
    "S307": (SERIOUS, "whoever can choose the text runs code"),
    "S308": (WARNING, "what users enter becomes part of the page"),
    "S311": (WARNING, "it can be foreseen; use `secrets`"),
    "S312": (WARNING, "anybody in between can read and change the traffic"),
    "S314": (NOTE, "a hostile document can use up the memory"),
    "S323": (SERIOUS, "anybody in between can read and change the traffic"),
    "S324": (WARNING, "collisions can be made; use SHA-256, or say usedforsecurity=False"),
    "S501": (SERIOUS, "anybody in between can read and change the traffic"),
    "S502": (WARNING, ""),
    "S503": (WARNING, ""),
    "S504": (WARNING, ""),
    "S505": (WARNING, ""),
    "S506": (SERIOUS, "whoever can choose the text runs code; use yaml.safe_load"),
    "S507": (WARNING, "anybody in between can read and change the traffic"),
    "S602": (SERIOUS, "whoever can choose a part of the command runs any"),
    "S604": (WARNING, "whoever can choose a part of the command runs any"),
    "S605": (SERIOUS, "whoever can choose a part of the command runs any"),
    "S608": (SERIOUS, "whoever can choose a part of the query runs any; give parameters"),
    "S609": (WARNING, ""),
    "S610": (WARNING, ""),
    "S611": (WARNING, ""),
    "S612": (WARNING, "whoever reaches the port runs code"),
    "S701": (WARNING, "what users enter becomes part of the page"),
    "S702": (WARNING, "what users enter becomes part of the page"),
    "S704": (WARNING, "what users enter becomes part of the page"),
}
LEFTOVERS = {
    "T100": (SERIOUS, "the program stops there"),
}
FROM_ELSEWHERE = ("F821", "F822", "F823", "F401", "F841", "F811")
"""What a change elsewhere in the file can bring about."""
_IN_TESTS = """
S102 S103 S104 S108 S113 S201 S301 S302 S304 S305 S306 S307 S308 S311 S314 S324 S501 S506 S602 S604 S605 S608
S701 S704 S110 S112 B015 B018 DTZ003 DTZ004 E711 E712 E713 E714 E721 F403 F841 N805
PLR0124 PLR0133 PLW0133 PLW0177 SIM115
"""
NOT_IN_TESTS = frozenset(_IN_TESTS.split())
"""What tests do on purpose."""
CALLED_ONCE = ("now(", "utcnow(", "today(", "time(", "uuid", "random", "token_", "environ", "getenv", "open(", "Lock(")
"""Calls whose result in a default is surely meant anew each time; others, as `Depends()`, are meant so."""
GUESSED = ("token", "secret", "passw", "key", "nonce", "salt", "session", "otp", "pin", "code", "csrf", "reset")
METHODS = ("sort", "reverse", "clear", "close", "flush", "append", "extend", "pop", "commit", "rollback", "write")
"""Methods that nobody names but to call them."""


def known(code: str, table: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The weight and the reason of a rule; a table may name a whole family by how its codes begin."""
    return table.get(code) or next((row for stem, row in table.items() if code.startswith(stem)), None)
