// The last word of a process whose store cannot be read. LMDB reads its file as memory: where the
// file was cut off under it, or the disk fails, the kernel answers with SIGBUS. say_store_faults()
// has that end with one sentence (file, octet, what to do) on standard error and the exit status of
// kDamagedExit; a SIGBUS elsewhere is what it was.
#pragma once

namespace gantry::store {

// Exit status of a controller whose store is damaged, or older than what its nodes know: a person
// has to look, and who supervises it does not start it again (EX_DATAERR of sysexits.h).
inline constexpr int kDamagedExit = 65;

// For main(); once. `program` must live as long as the process.
void say_store_faults(const char* program);

// Says that LMDB found its file to be impossible, and ends the process in the same way.
[[noreturn]] void end_damaged(const char* path, const char* what);

}  // namespace gantry::store
