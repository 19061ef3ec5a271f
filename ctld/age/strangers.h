// Strangers: attempts that run on nodes but are not in the store, because the store is an older
// copy that was accepted. They are left alone: the core is not told about them, so it does not
// order their end, and their nodes are drained until they have ended by themselves. They are stored
// in a file beside the store, one line each: NODE JOB ATTEMPT.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/proto/node_report.h"
#include "common/result.h"

namespace gantry::age {

class Strangers {
 public:
  Strangers() = default;  // stored nowhere; for the simulator
  static Result<Strangers> load(const std::string& state_dir);

  // The stranger is durable when this returns. Returns false if it was already known.
  Result<bool> add(const std::string& node, const proto::AttemptKey& key);
  Result<bool> remove(const std::string& node, const proto::AttemptKey& key);
  [[nodiscard]] bool has(const std::string& node, const proto::AttemptKey& key) const {
    return all_.contains({node, key});
  }
  [[nodiscard]] std::vector<proto::AttemptKey> of(const std::string& node) const;
  [[nodiscard]] bool any_on(const std::string& node) const;
  [[nodiscard]] std::string on(const std::string& node) const;  // "12.1 14.2"

 private:
  [[nodiscard]] Result<void> save() const;
  std::string path_;
  std::set<std::pair<std::string, proto::AttemptKey>> all_;
};

}  // namespace gantry::age
