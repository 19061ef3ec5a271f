// How the tasks of a step are laid out, as Slurm's --distribution asks for it: over the nodes, and
// over the sockets of one node.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/fields.h"
#include "common/result.h"

namespace gantry {

// The order in which tasks are numbered over the nodes.
enum class NodeOrder : std::uint8_t {
  block = 0,      // node by node
  cyclic = 1,     // round the nodes
  plane = 2,      // round the nodes, in blocks of Distribution::plane tasks
  arbitrary = 3,  // a list of hosts names the node of each task
};
GANTRY_NAMES(NodeOrder, {block, "block"}, {cyclic, "cyclic"}, {plane, "plane"},
             {arbitrary, "arbitrary"})

// The order in which a node's tasks get the step's cores there.
enum class CoreOrder : std::uint8_t {
  block = 0,    // in the order of their numbers
  cyclic = 1,   // a task's on one socket, the next task's on the next
  fcyclic = 2,  // each core on the next socket, also of one task
};
GANTRY_NAMES(CoreOrder, {block, "block"}, {cyclic, "cyclic"}, {fcyclic, "fcyclic"})

struct Distribution {
  NodeOrder nodes = NodeOrder::block;
  CoreOrder cores = CoreOrder::block;
  std::uint32_t plane = 0;  // tasks in a block of NodeOrder::plane; above 0 with it alone
  // The words of the request, if format_distribution() would omit some: a level with the default,
  // or the order of cores within a socket. "" = no more words.
  std::string words{};
  bool pack = false;  // a step fills its nodes one by one, and does not deal its tasks evenly
  friend bool operator==(const Distribution&, const Distribution&) = default;
  GANTRY_FIELDS(FIELD(1, nodes), FIELD(2, cores), FIELD(3, plane), FIELD(4, words), FIELD(5, pack))
};

// "cyclic", "block:fcyclic", "*:cyclic:block", "plane=4", "arbitrary", "block,pack": nodes,
// sockets, and cores within a socket. Because whole cores are assigned, all orders within a socket
// have the same result. For sockets "*" means cyclic, as in Slurm. Unset if it asks only for the
// default, for example "*:block". Error invalid_argument: an unknown word.
Result<std::optional<Distribution>> parse_distribution(std::string_view text);
std::string format_distribution(const Distribution& distribution);  // "cyclic", "block:fcyclic"
// The value of SLURM_DISTRIBUTION, without the size of a plane: "block:cyclic:cyclic", "plane".
std::string distribution_words(const Distribution& distribution);

}  // namespace gantry
