#include "noded/shim/process/script_failure.h"

#include <cerrno>

#include "noded/machine/files.h"

namespace gantry::runtime {
namespace {

// The program that the first line names: "/bin/sh" of "#!/bin/sh -e"; "" = it names none.
std::string interpreter_of(const std::string& script) {
  const std::string line = script.substr(0, script.find('\n'));
  if (!line.starts_with("#!")) return {};
  const std::size_t from = line.find_first_not_of(" \t", 2);
  if (from == std::string::npos) return {};
  return line.substr(from, line.find_first_of(" \t\r", from) - from);
}

}  // namespace

std::string script_failure(const Shim& shim, int error) {
  const std::string program =
      interpreter_of(read_file(shim.dir + "/run/script").value_or(std::string()));
  const std::string& image = shim.request.container.image;
  const std::string where = image.empty() ? "on " + shim.setup.node : "in the image " + image;
  const std::string named = " (the first line of the script names it)";
  if (error == ENOENT && !program.empty()) return program + " does not exist " + where + named;
  if (error == EACCES && !program.empty()) return program + " may not be executed " + where + named;
  return on_node(shim, errno_text("the batch script cannot be run", error));
}

}  // namespace gantry::runtime
