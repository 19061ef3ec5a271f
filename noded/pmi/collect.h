// Collectives among the PMIx or PMI servers of a step's nodes: each server sends its part to all
// others that take part, and is done when it has all parts. A request for one rank's data goes to
// the node that has the rank. The class does no I/O: it sends through `send`, and bytes of other
// nodes are passed in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "noded/pmi/wire.h"

namespace gantry::pmix {

class Collect {
 public:
  using Done = std::function<void(bool good, const std::string& data)>;
  // `node` is an index, or kAllOthers. Bytes arrive in order, in pieces of any size.
  using Send = std::function<void(std::uint32_t node, std::string_view bytes)>;
  // Another node requests the data of a rank on this node; the callee replies with answer().
  using Asked = std::function<void(std::uint32_t node, std::uint32_t question, std::uint32_t rank)>;

  Collect(std::uint32_t self, std::uint32_t nodes, Send send, Asked asked)
      : self_(self), nodes_(nodes), send_(std::move(send)), asked_(std::move(asked)) {}

  // `who` tells which processes take part, in the same text on each node; `among` are their nodes.
  // `done` gets the parts joined in the order of nodes.
  void gather(const std::string& who, const std::set<std::uint32_t>& among, std::string part,
              Done done);
  // Whether another node waits in a collective of these processes that has not begun here.
  [[nodiscard]] bool awaited(const std::string& who) const;
  // The first of `nodes` whose part is missing in a collective of these processes that has begun
  // here.
  [[nodiscard]] std::optional<std::uint32_t> waits_for(const std::string& who,
                                                       const std::set<std::uint32_t>& nodes) const;
  void ask(std::uint32_t node, std::uint32_t rank, Done done);
  void answer(std::uint32_t node, std::uint32_t question, bool good, std::string_view data);
  // Returns false if the bytes break the rules of these messages.
  bool receive(std::uint32_t node, std::string_view bytes);

 private:
  struct Gathering {
    std::map<std::uint32_t, std::string> parts;
    std::set<std::uint32_t> among;  // empty: it has not begun here
    Done done;
  };
  void send(std::uint32_t node, char kind, std::uint32_t number, std::string_view a,
            std::string_view b);
  bool take(std::uint32_t node, char kind, std::uint32_t number, std::string_view a,
            std::string_view b);
  void look(const std::string& id);

  std::uint32_t self_, nodes_;
  Send send_;
  Asked asked_;
  // The start of a message that is not complete yet, by node.
  std::map<std::uint32_t, std::string> partial_;
  // How many collectives of the same processes have begun here.
  std::map<std::string, std::uint32_t> rounds_;
  std::map<std::string, Gathering> gatherings_;
  std::map<std::uint32_t, Done> questions_;
  std::uint32_t next_question_ = 0;
};

// How the tasks of a step are distributed over its nodes, and how the shim passes that to the PMI
// or PMIx server.
struct Layout {
  std::string name;                  // name of the namespace
  std::uint32_t self = 0;            // index of this node
  std::vector<std::string> nodes;    // in the order of ranks
  std::vector<std::uint32_t> tasks;  // number of tasks of each node
  [[nodiscard]] std::uint32_t first_rank(std::uint32_t node) const;
  [[nodiscard]] std::uint32_t size() const {
    return first_rank(static_cast<std::uint32_t>(nodes.size()));
  }
  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) const;
};

// What a server says to its shim; several threads may. The process ends if the shim is gone, and
// the step with it.
void say(Word word, std::uint32_t number, std::string_view bytes);
void say_to_peer(std::uint32_t node, std::string_view bytes);
void say_abort(std::uint32_t rank, int status, const std::string& why);

// Reads a server's command line: NAMESPACE NODE NODES TASKS. Returns nullopt if it is wrong.
std::optional<Layout> read_layout(int argc, char** argv);

}  // namespace gantry::pmix
