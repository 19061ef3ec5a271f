// Makes the reference page: one table per section, in the order of the declarations.
#include "config/reference.h"

#include <fmt/core.h>

#include "config/options.h"

namespace gantry::config {
namespace {

std::string default_of(const Option& option) {
  if (option.required) return "*required*";
  const std::string value = show_option(option);
  return value.empty() ? "none" : "`" + value + "`";
}

template <class Section>
std::string section(std::string_view title, std::string_view text, Section defaults) {
  std::string page = fmt::format(
      "\n## {}\n\n{}\n\n| option | type | default | meaning |\n|---|---|---|---|\n", title, text);
  for (const Option& option : options_of(defaults))
    page += fmt::format("| `{}` | {} | {} | {} |\n", option.name, type_of(option),
                        default_of(option), option.doc);
  return page;
}

}  // namespace

std::string reference_page() {
  std::string page =
      "# gantry.yaml\n\n"
      "<!-- Made from config/options.cc by `gantry config reference`; do not edit. -->\n\n"
      "One file describes the cluster; both daemons read it. It is looked for in `$GANTRY_CONF` (a "
      "file, or a directory with `gantry.yaml`), `~/.config/gantry/gantry.yaml`, "
      "`/etc/gantry/gantry.yaml`. Commands read `client.conf` beside it, six lines that `gantry "
      "config client` writes. `gantry config check FILE` checks a file.\n\n"
      "An unknown key, a value of the wrong kind or a value out of range is refused with its line "
      "and column. Lengths of time are `30s`, `5m`, `2h`, `7d`, `1m30s`, or `HH:MM:SS` and "
      "`D-HH:MM:SS`; amounts of memory are numbers with `K`, `M`, `G` or `T`. Examples: "
      "[minimal](../config/examples/minimal.yaml), [fifteen "
      "nodes](../config/examples/cluster15.yaml).\n";
  page += section("Top level", "The name, and the sections below.", Config{});
  page += section("controller", "The controller, `gantry-ctld`.", ControllerConfig{});
  page += section("noded", "Every node daemon, `gantry-noded`.", NodedConfig{});
  page += section("gate", "Every gate, `gantry-gate` (gate.md).", GateConfig{});
  page += section("nodes",
                  "A list; one entry per node, or per range of equal nodes. A node that reports "
                  "less than it declares here is drained.",
                  NodeConfig{});
  page += section(
      "partitions",
      "A list; one entry per queue. Left out altogether, all nodes are in one partition `batch`.",
      PartitionConfig{});
  page +=
      "\n## client.conf\n\n"
      "One `key = value` per line: `cluster`; `controller`, as HOST:PORT; `public_key` of the "
      "controller; `auth`, how a command shows who the user is: `any` (the key file if it can be "
      "read, else munge), `key` or `munge`; `key_file`, in which `%u` is the login name; "
      "`munge_socket`; and `socket`, the socket of a login node's daemon "
      "(`controller.login_nodes`), which is asked first and for which nothing is shown. Without "
      "`socket` it is `/run/gantry/cli.sock` if there is no `key_file`; `none` = it is not asked. "
      "A daemon that runs neither as root nor as the owner of `client.conf` is not asked, and "
      "where none answers or it refuses, the command goes to the controller itself.\n";
  return page;
}

}  // namespace gantry::config
