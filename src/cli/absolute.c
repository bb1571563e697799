/* absolute.c - a path that means the same in every working directory. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

char *weft_cli_absolute_path(const char *path)
{
	char cwd[PATH_MAX], *text;

	if (!path[0] || path[0] == '/' || !getcwd(cwd, sizeof(cwd)))
		return strdup(path);
	return asprintf(&text, "%s/%s", cwd, path) < 0 ? NULL : text;
}
