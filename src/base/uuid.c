/* uuid.c - stable UUIDs: the same at every start, and different on every machine unless they are to
 * be common. */
#include "base/uuid.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* /etc/machine-id must not be shown, only hashed (machine-id(5)). */
static void machine_name(char *name, size_t size)
{
	FILE *file = fopen("/etc/machine-id", "re");

	if (!file || !fgets(name, (int)size, file))
		gethostname(name, size);
	name[size - 1] = '\0';
	if (file)
		fclose(file);
}

void weft_stable_hash(const char *kind, const char *text, bool common, uint8_t hash[32])
{
	char machine[256] = "", input[2048];
	unsigned len = 32;

	if (!common)
		machine_name(machine, sizeof(machine));
	snprintf(input, sizeof(input), "weft %s\n%s\n%s", kind, machine, text);
	EVP_Digest(input, strlen(input), hash, &len, EVP_sha256(), NULL);
}

void weft_stable_uuid(const char *kind, const char *text, bool common, uint8_t uuid[16])
{
	uint8_t hash[32];

	weft_stable_hash(kind, text, common, hash);
	memcpy(uuid, hash, 16);
	uuid[6] = (uint8_t)(0x80 | (uuid[6] & 0x0f)); /* RFC 9562: version 8, custom */
	uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f));
}

void weft_uuid_format(const uint8_t u[16], char text[37])
{
	snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
		 u[13], u[14], u[15]);
}

int weft_uuid_parse(const char *text, uint8_t uuid[16])
{
	unsigned byte;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			if (*text++ != '-')
				return -EINVAL;
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return -EINVAL;
		sscanf(text, "%2x", &byte);
		uuid[i] = (uint8_t)byte;
		text += 2;
	}
	return *text ? -EINVAL : 0;
}
