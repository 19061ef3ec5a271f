// A queue of work that a thread does for users. Each user's items keep their order, and the users
// take turns, so nobody waits for all items of another user. There is a limit on all items and one
// on those of each user. The caller synchronises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace gantry::ctld {

// Item has a member `uid`, whose value() is the user's id.
template <class Item>
class UserQueue {
 public:
  UserQueue(std::size_t most, std::size_t most_of_user)
      : most_(most), most_of_user_(most_of_user) {}

  [[nodiscard]] bool empty() const { return size_ == 0; }

  // Returns false if there is no room for the item; then it is dropped.
  [[nodiscard]] bool push(Item item) {
    if (size_ >= most_) return false;
    std::deque<Item>& waiting = waiting_[item.uid.value()];
    if (waiting.size() >= most_of_user_) return false;
    waiting.push_back(std::move(item));
    ++size_;
    return true;
  }

  // The oldest item of the next user for whose oldest item `may_go` is true; nullopt if there is
  // none.
  template <class Predicate>
  std::optional<Item> take(const Predicate& may_go) {
    auto at = waiting_.upper_bound(last_user_);
    for (std::size_t i = 0; i < waiting_.size(); ++i, ++at) {
      if (at == waiting_.end()) at = waiting_.begin();
      if (!may_go(at->second.front())) continue;
      std::optional<Item> item(std::move(at->second.front()));
      at->second.pop_front();
      --size_;
      last_user_ = at->first;
      if (at->second.empty()) waiting_.erase(at);
      return item;
    }
    return std::nullopt;
  }

 private:
  std::size_t most_, most_of_user_;
  std::map<std::uint32_t, std::deque<Item>> waiting_;  // by user id; no list is empty
  std::size_t size_ = 0;
  std::uint32_t last_user_ = 0;  // the user whose item was taken last
};

}  // namespace gantry::ctld
