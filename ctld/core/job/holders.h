// Who holds what a waiting job waits for, until when, and what can be done: jobs that it depends
// on, jobs that have its licences or the nodes that it names, and nodes that are out of service.
// What the asker may not see is left out, or has no name.
#pragma once

#include <string>
#include <vector>

#include "ctld/core/context.h"

namespace gantry::core {

struct Node;

class Sight;

class Holders {
 public:
  // `sight` is null for operators.
  Holders(const Context& ctx, const Job& job, const Sight* sight)
      : ctx_(ctx), job_(job), sight_(sight) {}

  // Each appends clauses without full stops.
  void say_dependencies(std::vector<std::string>& out) const;
  void say_license(const std::string& name, std::vector<std::string>& out) const;
  // Nodes that the job names and that are taken or out of service.
  void say_named_nodes(std::vector<std::string>& out) const;
  // Nodes of its partition that are out of service.
  void say_lost_nodes(std::vector<std::string>& out) const;

 private:
  [[nodiscard]] bool sees(const Job& job) const;
  [[nodiscard]] std::string name_of(const Job& job) const;
  [[nodiscard]] std::string state_of(const Job& job) const;
  [[nodiscard]] std::string trouble_of(const Node& node) const;
  void say_singleton(std::vector<std::string>& out) const;

  const Context& ctx_;
  const Job& job_;
  const Sight* sight_;
};

}  // namespace gantry::core
