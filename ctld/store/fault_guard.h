// The last message of a process whose store cannot be read. LMDB maps its file into memory. If the
// file was cut off meanwhile, or the disk fails, the kernel sends SIGBUS. After say_store_faults()
// was called, the process then ends with one sentence on standard error (file, octet, what to do)
// and the exit status kDamagedExit. A SIGBUS at another address has its usual effect.
#pragma once

namespace gantry::store {

// Exit status of a controller whose store is damaged, or is older than what its nodes know. A
// person has to look at it, and a supervisor must not start the controller again (EX_DATAERR of
// sysexits.h).
inline constexpr int kDamagedExit = 65;

// For main(), to be called once. `program` must live as long as the process.
void say_store_faults(const char* program);

// Reports that LMDB found its file to be inconsistent, and ends the process in the same way.
[[noreturn]] void end_damaged(const char* path, const char* what);

}  // namespace gantry::store
