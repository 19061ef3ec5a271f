// JobTable: jobs by id. Ids only grow, so jobs lie in pages of neighbours: finding one is two
// steps, and walking all of them is in id order. A page is freed with its last job.
//
// IdList: some of the jobs (those of a user, those of one name), in id order. Removed ids stay in
// it until they are half of it, so callers must skip ids of jobs that do not belong to it any more.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "common/assert.h"
#include "common/types.h"

namespace gantry::core {

template <class T>
class JobTable {
 public:
  static constexpr std::size_t kPage = 256;

  [[nodiscard]] T* find(JobId id) {
    const std::size_t page = id.value() / kPage;
    if (page >= pages_.size() || !pages_[page]) return nullptr;
    return pages_[page]->slots[id.value() % kPage].get();
  }
  [[nodiscard]] const T* find(JobId id) const { return const_cast<JobTable*>(this)->find(id); }
  [[nodiscard]] T& at(JobId id) {
    T* job = find(id);
    GANTRY_ASSERT(job != nullptr, "a job that must exist");
    return *job;
  }
  [[nodiscard]] const T& at(JobId id) const { return const_cast<JobTable*>(this)->at(id); }

  T& add(JobId id) {
    const std::size_t page = id.value() / kPage;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<Page>();
    auto& slot = pages_[page]->slots[id.value() % kPage];
    GANTRY_ASSERT(!slot, "a job id is used once");
    slot = std::make_unique<T>();
    ++pages_[page]->used;
    ++size_;
    return *slot;
  }

  void remove(JobId id) {
    const std::size_t page = id.value() / kPage;
    auto& slot = pages_.at(page)->slots[id.value() % kPage];
    GANTRY_ASSERT(slot != nullptr, "a job is removed once");
    slot.reset();
    --size_;
    if (--pages_[page]->used == 0) pages_[page].reset();
  }

  [[nodiscard]] std::size_t size() const { return size_; }

  // Calls f(job) in id order from the first id above `after`; stops when it returns false.
  template <class F>
  void walk(JobId after, F&& f) const {
    for (std::size_t page = (after.value() + 1) / kPage; page < pages_.size(); ++page) {
      if (!pages_[page]) continue;
      for (std::size_t i = 0; i < kPage; ++i) {
        const T* job = pages_[page]->slots[i].get();
        if (job == nullptr || page * kPage + i <= after.value()) continue;
        if (!f(*job)) return;
      }
    }
  }

 private:
  struct Page {
    std::array<std::unique_ptr<T>, kPage> slots;
    std::size_t used = 0;
  };
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
};

class IdList {
 public:
  void add(JobId id) {
    if (ids_.empty() || ids_.back() < id) {
      ids_.push_back(id);
      return;
    }
    const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
    if (at == ids_.end() || *at != id)
      ids_.insert(at, id);
    else if (gone_ > 0)
      --gone_;  // the id was removed and comes back
  }
  // Counts one id that no longer belongs to the list. When half of the ids are such, drops those
  // for which `stays(id)` is false.
  template <class F>
  void removed(F&& stays) {
    if (++gone_ * 2 < ids_.size()) return;
    std::erase_if(ids_, [&](JobId id) { return !stays(id); });
    gone_ = 0;
  }
  [[nodiscard]] bool empty() const { return ids_.size() == gone_; }
  [[nodiscard]] const std::vector<JobId>& ids() const { return ids_; }

 private:
  std::vector<JobId> ids_;  // ascending
  std::size_t gone_ = 0;
};

}  // namespace gantry::core
