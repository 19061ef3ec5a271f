// Network namespaces that outlive the process which made them: each is bound to a file, so it stays
// until the file is released. Only root can use them.
//
// A thread that enters a namespace comes back before the call returns; other threads are where they
// were. In a process of several threads only one should call these, because files below
// /proc/sys/net and new sockets belong to the namespace of the thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/fd.h"
#include "common/result.h"

namespace gantry::network {

// The namespace of this thread.
Result<Fd> own_space();

// Makes a namespace with nothing but a loopback link, which is up. It goes with the descriptor.
Result<Fd> new_space();

// Binds a namespace to a new file.
Result<void> bind_space(const Fd& space, const std::string& file);

// Makes a namespace and binds it to a new file.
Result<Fd> make_space(const std::string& file);

// Opens the namespace that the file holds. The error is not_found if the file holds none: it is not
// there, or it was left over from before the machine started.
Result<Fd> open_space(const std::string& file);

// The file is gone afterwards, and so is the namespace once nothing runs in it.
Result<void> release_space(const std::string& file);

// Runs `work` inside of the namespace. Ends the process if the thread cannot come back.
Result<void> inside(const Fd& space, const std::function<Result<void>()>& work);

// Writes a setting of this thread's namespace: "ipv6/conf/all/forwarding".
Result<void> set_sysctl(const std::string& name, std::string_view value);

}  // namespace gantry::network
