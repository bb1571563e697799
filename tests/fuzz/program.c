/* program.c - an input as a program. */
#include "program.h"

#include "peer/input.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_operations(void)
{
	for (unsigned i = 0; i < program.ops_max && input_left(); i++) {
		uint8_t op = u8();

		program.ops[(op & 0x7f) % program.nops]();
		if (op & 0x80)
			program.settle();
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	program.create();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	input_set(data, size);
	if (program.begin()) {
		run_operations();
		program.finish();
	}
	program.end();
	return 0;
}
