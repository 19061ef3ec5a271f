// The commands that bring a process of HAProxy from what it has to what it is to have, without a
// reload; pure. A command that fails (a server that still has connections cannot be deleted) is
// made again at the next look.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gate/plan/layout.h"
#include "gate/plan/observed.h"

namespace gantry::gate {

// Servers: added, changed, drained, removed. Backends that the process does not have are left out,
// and what is in backends that are not wanted is removed. Tables are changed between the two parts,
// so that no request is sent to a backend that has no server yet, or none any more.
struct ServerCommands {
  std::vector<std::string> before, after;
};
ServerCommands server_commands(const Layout& wanted, const Seen& seen);

// Tables. `has` is what the process has; rows are added and changed before others go.
// `file_of` of a table's name is its name in commands.
std::vector<std::string> table_commands(const Tables& wanted, const Tables& has,
                                        const std::string& directory);

// What of the tables a process can have that knows only these backends: it sends the part of a
// version that it does not know to another one of the service, and knows no service without one.
Tables tables_for(const Tables& tables, const std::set<std::string>& backends);

// The names of all tables.
const std::vector<std::string>& table_names();

}  // namespace gantry::gate
