// Verdicts: why the jobs of each class wait, from the last plan that looked at the class.
#pragma once

#include <utility>
#include <vector>

#include "ctld/core/state/state.h"
#include "ctld/sched/plan.h"

namespace gantry::core {

class Verdicts {
 public:
  // Returns a verdict with reason none and no head if no plan has looked at the class yet.
  [[nodiscard]] const sched::ClassVerdict& of(const ClassTable& classes, ClassId id) const {
    static const sched::ClassVerdict none{};
    if (id.value() >= entries_.size()) return none;
    const Entry& entry = entries_[id.value()];
    return entry.number == classes.at(id).number ? entry.verdict : none;
  }
  void set(const ClassTable& classes, ClassId id, sched::ClassVerdict&& verdict) {
    if (id.value() >= entries_.size()) entries_.resize(id.value() + 1);
    entries_[id.value()] = {classes.at(id).number, std::move(verdict)};
  }

 private:
  struct Entry {
    std::uint64_t number =
        0;  // JobClass::number, because the same id may belong to another class now
    sched::ClassVerdict verdict;
  };
  std::vector<Entry> entries_;  // by ClassId
};

}  // namespace gantry::core
