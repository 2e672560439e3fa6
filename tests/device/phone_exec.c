// Preloaded into the shell of an emulated phone: programs for AArch64 are given to an emulator, as if
// the phone's kernel ran them. $EMULATOR is its command line, a word a line.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*Execve)(const char*, char* const[], char* const[]);
typedef int (*Execvp)(const char*, char* const[]);

static int IsForArm(const char* path) {
  Elf64_Ehdr header;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t count = read(file, &header, sizeof header);
  close(file);
  return count == (ssize_t)sizeof header && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_machine == EM_AARCH64;
}

int execve(const char* path, char* const arguments[], char* const variables[]) {
  Execve real = (Execve)dlsym(RTLD_NEXT, "execve");
  // What may not be run must not be run by way of the emulator.
  if (access(path, X_OK) != 0 || !IsForArm(path)) return real(path, arguments, variables);
  char* words = strdup(getenv("EMULATOR"));
  size_t count = 3;  // the last of the words, the path and the end
  for (const char* c = words; *c != '\0'; ++c) count += *c == '\n';
  for (size_t i = 0; arguments[i] != NULL; ++i) ++count;
  char** all = calloc(count, sizeof *all);
  size_t at = 0;
  for (char* word = strtok(words, "\n"); word != NULL; word = strtok(NULL, "\n")) all[at++] = word;
  all[at++] = (char*)path;
  for (size_t i = 1; arguments[0] != NULL && arguments[i] != NULL; ++i) all[at++] = arguments[i];
  // The emulator hands its variables on, and this library is for another processor.
  unsetenv("LD_PRELOAD");
  return real(all[0], all, environ);
}

// The C library's own call of execve is not the one above.
int execvp(const char* name, char* const arguments[]) {
  if (strchr(name, '/') != NULL) return execve(name, arguments, environ);
  return ((Execvp)dlsym(RTLD_NEXT, "execvp"))(name, arguments);
}
