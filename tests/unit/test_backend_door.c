/* test_backend_door.c - what nobody has checked ends the process before it reaches storage. */
#include "backend_case.h"
#include "running.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void no_answer(struct weft_io *io, int rc)
{
}

static bool aborts(struct weft_backend *be, struct weft_io *io)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		weft_backend_submit(be, io);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void door_is_guarded(void **state)
{
	static const struct {
		const char *name;
		struct weft_io io;
		bool aborts;
	} table[] = {
		{ "first block", { WEFT_IO_READ, .buf = data, .length = 512 } },
		{ "last block", { WEFT_IO_READ, .buf = data, .offset = MIB - 512, .length = 512 } },
		{ "all", { WEFT_IO_WRITE, .buf = data, .length = MIB } },
		{ "flush", { WEFT_IO_FLUSH } },
		{ "zeroes", { WEFT_IO_ZERO, .length = MIB } },
		{ "nothing", { WEFT_IO_READ, .buf = data }, true },
		{ "nothing to trim", { WEFT_IO_TRIM }, true },
		{ "beyond the end",
		  { WEFT_IO_READ, .buf = data, .offset = MIB, .length = 512 },
		  true },
		{ "across the end",
		  { WEFT_IO_WRITE, .buf = data, .offset = MIB - 512, .length = 1024 },
		  true },
		{ "more than all", { WEFT_IO_ZERO, .length = MIB + 512 }, true },
		{ "wraps", { WEFT_IO_READ, .buf = data, .offset = -512ull, .length = 1024 }, true },
		{ "offset", { WEFT_IO_READ, .buf = data, .offset = 256, .length = 512 }, true },
		{ "length", { WEFT_IO_TRIM, .length = 513 }, true },
		{ "no room for extents", { WEFT_IO_EXTENTS, .buf = data, .length = 512 }, true },
	};
	struct weft_backend *be = open_spec("null:1M"), *mem = open_spec("mem:8M"), *aligned;
	struct weft_io across = { WEFT_IO_ZERO, .offset = MIB, .length = 2 * MIB };
	struct weft_io crooked = { WEFT_IO_READ, .buf = data + 1, .length = 4096 };

	for_each_named(i, table, name) {
		struct weft_io io = table[i].io;

		io.done = no_answer;
		assert_int_equal(aborts(be, &io), table[i].aborts);
	}
	assert_true(aborts(mem, &across)); /* of two large pages */
	aligned = open_spec("null:1M");
	aligned->align = 512;
	crooked.done = no_answer;
	assert_false(aborts(be, &crooked));
	assert_true(aborts(aligned, &crooked));
	weft_backend_close(aligned);
	weft_backend_close(mem);
	weft_backend_close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(door_is_guarded) };

	return cmocka_run_group_tests_name("door", tests, make_dir, remove_dir);
}
