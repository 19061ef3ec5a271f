// Strangers: attempts that run on nodes and that the store does not know, because it is a copy of
// before them and was accepted all the same. They are left alone: the core is not told of them, so
// it does not order their end; their nodes are drained until they have ended by themselves. Kept in
// a file beside the store, one line each: NODE JOB ATTEMPT.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "common/proto/node_report.h"
#include "common/result.h"

namespace gantry::age {

class Strangers {
 public:
  Strangers() = default;  // kept nowhere: of a simulated disk
  static Result<Strangers> load(const std::string& state_dir);

  // Durable when it returns; false if it was known already.
  Result<bool> add(const std::string& node, const proto::AttemptKey& key);
  Result<bool> remove(const std::string& node, const proto::AttemptKey& key);
  [[nodiscard]] bool has(const std::string& node, const proto::AttemptKey& key) const {
    return all_.contains({node, key});
  }
  [[nodiscard]] bool any_on(const std::string& node) const;
  [[nodiscard]] std::string on(const std::string& node) const;  // "12.1 14.2"

 private:
  [[nodiscard]] Result<void> save() const;
  std::string path_;
  std::set<std::pair<std::string, proto::AttemptKey>> all_;
};

}  // namespace gantry::age
