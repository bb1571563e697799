/* spec.c - SPECs: parse the text that names a backend, and write it back.
 *
 *   TYPE:ARG[,key=value…]        file:/srv/a.img,size=10G,direct,block=4096,nsid=1
 *
 * Keys are a table: a name, which types take it, what is expected, which function stores it.
 *
 * Invariant: a parsed spec has a known type, an ARG, and only keys that the type takes, each
 * once. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "backend/filter/filter.h"
#include "backend/internal.h"
#include "base/cleanup.h"
#include "base/size.h"

/* A size must fit an off_t. */
#define SIZE_MAX_BYTES ((uint64_t)INT64_MAX)

struct parse {
	const char *text;
	struct weft_spec *spec;
	struct weft_err *err;
	unsigned seen; /* bit per entry of keys[] */
};

/* Cuts what it quotes, so that a long path leaves room for the reason. */
__attribute__((format(printf, 4, 0))) static int fail_behind(const char *text, struct weft_err *err,
							     int rc, const char *fmt, va_list ap)
{
	char why[320];

	vsnprintf(why, sizeof(why), fmt, ap);
	return weft_fail(err, rc, "%.180s: %s", text, why);
}

int weft_spec_fail(const struct weft_spec *spec, struct weft_err *err, int rc, const char *fmt, ...)
{
	char text[sizeof(spec->type) + sizeof(spec->arg)];
	va_list ap;

	snprintf(text, sizeof(text), "%s:%s", spec->type, spec->arg);
	va_start(ap, fmt);
	rc = fail_behind(text, err, rc, fmt, ap);
	va_end(ap);
	return rc;
}

__attribute__((format(printf, 3, 4))) static int reject(struct parse *p, int rc, const char *fmt,
							...)
{
	va_list ap;

	va_start(ap, fmt);
	rc = fail_behind(p->text, p->err, rc, fmt, ap);
	va_end(ap);
	return rc;
}

static void list_add(char *list, size_t size, const char *word)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? ", " : "", word);
}

/* --- keys ------------------------------------------------------------------------------------- */

static int parse_size(const char *text, uint64_t *size)
{
	int rc = weft_size_parse(text, size);

	if (rc < 0)
		return rc;
	return *size > SIZE_MAX_BYTES ? -ERANGE : *size ? 0 : -EINVAL;
}

static int set_size(struct weft_spec *spec, const char *value)
{
	return parse_size(value, &spec->size);
}

static int set_block(struct weft_spec *spec, const char *value)
{
	uint64_t block;

	if (weft_size_parse(value, &block) < 0 || (block != 512 && block != 4096))
		return -EINVAL;
	spec->block = (uint32_t)block;
	return 0;
}

/* 0 means none, FFFFFFFFh means all. */
static int set_nsid(struct weft_spec *spec, const char *value)
{
	char *end;
	unsigned long nsid;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	nsid = strtoul(value, &end, 10);
	if (*end || !nsid || nsid > WEFT_NSID_MAX)
		return -EINVAL;
	spec->nsid = (uint32_t)nsid;
	return 0;
}

static bool uuid_char_ok(size_t at, char c)
{
	if (at == 8 || at == 13 || at == 18 || at == 23)
		return c == '-';
	return isxdigit((unsigned char)c);
}

/* All zeroes means "no UUID" in Identify. */
static int set_uuid(struct weft_spec *spec, const char *value)
{
	const size_t len = sizeof(spec->uuid) - 1;

	if (strlen(value) != len || strspn(value, "0-") == len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (!uuid_char_ok(i, value[i]))
			return -EINVAL;
		spec->uuid[i] = (char)tolower((unsigned char)value[i]);
	}
	return 0;
}

static int set_ro(struct weft_spec *spec, const char *value)
{
	spec->read_only = true;
	return 0;
}

static int set_direct(struct weft_spec *spec, const char *value)
{
	spec->direct = true;
	return 0;
}

struct key {
	const char *name;
	unsigned only;        /* 0: every type takes it; otherwise those with this in ops->keys */
	const char *expected; /* NULL: takes no value */
	int (*set)(struct weft_spec *spec, const char *value);
};

static const struct key keys[] = {
	{ "size", WEFT_KEY_SIZE, "a size such as 512M or 10G", set_size },
	{ "direct", WEFT_KEY_DIRECT, NULL, set_direct },
	{ "block", 0, "512 or 4096", set_block },
	{ "nsid", 0, "a number from 1 to 1024", set_nsid },
	{ "uuid", 0, "a UUID such as 2f1c3b7e-52a4-4c0e-9d3a-6b8f0e1d2c3b", set_uuid },
	{ "ro", 0, NULL, set_ro },
	{ "delay", 0,
	  "a time such as 5ms or 2s, or kinds with theirs, read:5ms+flush:2s, of read, write, flush, "
	  "zero, trim",
	  weft_delay_set },
	{ "error", 0,
	  "a rate such as 1% or 1/1000, or kinds with theirs, write:1%+flush:1/10, of read, write, "
	  "flush, zero, trim",
	  weft_error_set },
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

static bool key_is_allowed(const struct weft_backend_ops *ops, const struct key *key)
{
	return !key->only || (ops->keys & key->only);
}

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < NKEYS; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static int reject_key(struct parse *p, const char *name)
{
	char list[128] = "";

	for (size_t i = 0; i < NKEYS; i++)
		if (key_is_allowed(p->spec->ops, &keys[i]))
			list_add(list, sizeof(list), keys[i].name);
	return reject(p, -EINVAL, "%s takes no key \"%.40s\"; expected one of %s", p->spec->type,
		      name, list);
}

static int set_value(struct parse *p, const struct key *key, const char *value)
{
	struct weft_err why = { "" };
	int rc;

	if (value && !key->expected)
		return reject(p, -EINVAL, "key \"%s\" takes no value", key->name);
	if (!value && key->expected)
		return reject(p, -EINVAL, "key \"%s\" needs a value; expected %s", key->name,
			      key->expected);
	rc = key->set(p->spec, value);
	if (rc == -ERANGE)
		return reject(p, rc, "key \"%s\": %.40s is too large", key->name, value);
	if (rc < 0 && key->set == set_size && weft_size_is_ambiguous(value, &why))
		return reject(p, rc, "key \"%s\": %s", key->name, why.text);
	if (rc < 0)
		return reject(p, rc, "key \"%s\" cannot be \"%.40s\"; expected %s", key->name,
			      value, key->expected);
	return 0;
}

/* @word is "key" or "key=value". */
static int parse_key(struct parse *p, char *word)
{
	char *value = strchr(word, '=');
	const struct key *key;
	unsigned bit;

	if (value)
		*value++ = '\0';
	key = find_key(word);
	if (!key || !key_is_allowed(p->spec->ops, key))
		return reject_key(p, word);
	bit = 1u << (key - keys);
	if (p->seen & bit)
		return reject(p, -EINVAL, "key \"%s\" is given twice", key->name);
	p->seen |= bit;
	return set_value(p, key, value);
}

/* --- TYPE:ARG --------------------------------------------------------------------------------- */

static int reject_type(struct parse *p, const char *type)
{
	char list[256] = "";
	const char *usage;

	if (strchr(type, '/'))
		return reject(p, -EINVAL, "it has no type; did you mean %s:%.180s?",
			      strncmp(type, "/dev/", 5) ? "file" : "block", p->text);
	for (unsigned i = 0; (usage = weft_backend_usage(i)); i++)
		list_add(list, sizeof(list), usage);
	return reject(p, -EINVAL, "unknown type \"%.40s\"; expected one of %s", type, list);
}

static int parse_type(struct parse *p, const char *type)
{
	p->spec->ops = weft_backend_type(type);
	if (!p->spec->ops)
		return reject_type(p, type);
	snprintf(p->spec->type, sizeof(p->spec->type), "%s", type);
	return 0;
}

static int parse_arg(struct parse *p, const char *arg)
{
	struct weft_spec *spec = p->spec;
	struct weft_err why = { "" };
	int rc;

	if (!arg || !*arg)
		return reject(p, -EINVAL, "expected %s", spec->ops->usage);
	if (strlen(arg) >= sizeof(spec->arg))
		return reject(p, -ENAMETOOLONG, "longer than %zu bytes", sizeof(spec->arg) - 1);
	strcpy(spec->arg, arg);
	if (!spec->ops->arg_is_size)
		return 0;
	rc = parse_size(arg, &spec->size);
	if (rc == -ERANGE)
		return reject(p, rc, "%.40s is too large", arg);
	if (rc < 0 && weft_size_is_ambiguous(arg, &why))
		return reject(p, rc, "%s", why.text);
	if (rc < 0)
		return reject(p, rc, "\"%.40s\" is not a size; expected %s, such as %s:1G", arg,
			      spec->ops->usage, spec->type);
	return 0;
}

/* A namespace may still choose the smallest block, so that is checked if there is no block=. */
static int check_size_multiple(struct parse *p)
{
	uint32_t block = p->spec->block ? p->spec->block : WEFT_BLOCK_MIN;

	if (p->spec->size % block == 0)
		return 0;
	return reject(p, -EINVAL, "the size is not a multiple of the block, %u bytes", block);
}

/* Cuts @rest at the first @at and returns what follows, or NULL. */
static char *split_at(char *rest, char at)
{
	char *next = strchr(rest, at);

	if (next)
		*next++ = '\0';
	return next;
}

static int parse_words(struct parse *p, char *type)
{
	char *rest = split_at(type, ','), *arg = split_at(type, ':'), *word;
	int rc;

	rc = parse_type(p, type);
	if (rc < 0)
		return rc;
	rc = parse_arg(p, arg);
	while (rc == 0 && rest) {
		word = rest;
		rest = split_at(word, ',');
		rc = parse_key(p, word);
	}
	return rc < 0 ? rc : check_size_multiple(p);
}

int weft_spec_parse(const char *text, struct weft_spec *spec, struct weft_err *err)
{
	_cleanup_(weft_freep) char *words = strdup(text);
	struct parse p = { .text = text, .spec = spec, .err = err };

	*spec = (struct weft_spec){ 0 };
	if (!words)
		return reject(&p, -ENOMEM, "out of memory");
	return parse_words(&p, words);
}

/* --- back to text ----------------------------------------------------------------------------- */

/* A SPEC may be saved in one working directory and opened in another: a relative path becomes
 * absolute, unless a SPEC cannot hold that. */
static const char *cwd_prefix(const struct weft_spec *spec, char *cwd, size_t size)
{
	if (spec->ops->arg_is_size || spec->arg[0] == '/' || !getcwd(cwd, size))
		return "";
	if (strchr(cwd, ',') || strlen(cwd) + 1 + strlen(spec->arg) >= sizeof(spec->arg))
		return "";
	return strcat(cwd, "/");
}

char *weft_spec_text(const struct weft_spec *spec)
{
	bool sized = spec->ops->arg_is_size;
	char *text, size[32], cwd[sizeof(spec->arg)];
	int len;

	assert(spec->ops && !strchr(spec->arg, ',')); /* or the text would be another SPEC */
	weft_size_format(spec->size, size, sizeof(size));
	len = asprintf(&text, "%s:%s%s%s%s%s%s%s%s%s%s", spec->type,
		       cwd_prefix(spec, cwd, sizeof(cwd)), sized ? size : spec->arg,
		       spec->size && !sized ? ",size=" : "", spec->size && !sized ? size : "",
		       spec->direct ? ",direct" : "", spec->read_only ? ",ro" : "",
		       spec->delay[0] ? ",delay=" : "", spec->delay,
		       spec->error[0] ? ",error=" : "", spec->error);
	return len < 0 ? NULL : text;
}

static void absolute_path(const struct weft_spec *spec, char path[sizeof(spec->arg)])
{
	char cwd[sizeof(spec->arg)];

	snprintf(path, sizeof(spec->arg), "%s%s", cwd_prefix(spec, cwd, sizeof(cwd)), spec->arg);
}

bool weft_spec_same(const struct weft_spec *a, const struct weft_spec *b)
{
	char path_a[sizeof(a->arg)], path_b[sizeof(b->arg)];

	if (a->ops != b->ops || a->read_only != b->read_only || a->direct != b->direct)
		return false;
	absolute_path(a, path_a);
	absolute_path(b, path_b);
	return a->ops->arg_is_size || !strcmp(path_a, path_b);
}

/* By device and inode, whatever path leads to it; a file that does not exist yet, by its path. */
bool weft_spec_storage_name(const struct weft_spec *spec, char name[WEFT_STORAGE_NAME_MAX])
{
	char path[sizeof(spec->arg)];
	struct stat st;

	if (spec->ops->arg_is_size)
		return false;
	absolute_path(spec, path);
	if (stat(path, &st) < 0)
		snprintf(name, WEFT_STORAGE_NAME_MAX, "path %s", path);
	else if (S_ISBLK(st.st_mode))
		snprintf(name, WEFT_STORAGE_NAME_MAX, "device %jx", (uintmax_t)st.st_rdev);
	else
		snprintf(name, WEFT_STORAGE_NAME_MAX, "file %jx %ju", (uintmax_t)st.st_dev,
			 (uintmax_t)st.st_ino);
	return true;
}
