#!/usr/bin/env python3
"""all_headers - writes OUTPUT, a test program that includes every header of include/ and src/, twice.

    all_headers.py OUTPUT ROOT [FOLDER]...      without those below src/FOLDER

OUTPUT stays as it is while the headers are the same, so that nothing is built again for it.
"""

import pathlib
import sys

PROGRAM = """\
/* test_headers.c - no two headers clash: this file includes all of them, and each twice. */
{includes}
{includes}
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void headers_do_not_clash(void **state)
{{
	/* It was compiled. */
}}

int main(void)
{{
	const struct CMUnitTest tests[] = {{ cmocka_unit_test(headers_do_not_clash) }};

	return cmocka_run_group_tests(tests, NULL, NULL);
}}
"""


def headers(top, left_out):
    for path in sorted(top.rglob("*.h")):
        name = path.relative_to(top).as_posix()
        if not name.startswith(tuple(folder + "/" for folder in left_out)):
            yield name


def main():
    output, root = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = [f"#include <{name}>" for name in headers(root / "include", [])]
    lines += [f'#include "{name}"' for name in headers(root / "src", sys.argv[3:])]
    text = PROGRAM.format(includes="\n".join(lines))
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


main()
