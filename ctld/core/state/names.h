// Names: texts that many jobs share (job, user and account names), each kept once with a count of
// its users. NameId 0 is the empty text and needs no counting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/assert.h"
#include "common/types.h"

namespace gantry::core {

using NameId = Id<struct NameTag, std::uint32_t>;

class Names {
 public:
  Names() : entries_(1) {}

  NameId add(std::string_view text) {
    if (text.empty()) return NameId{};
    if (const auto it = ids_.find(text); it != ids_.end()) {
      ++entries_[it->second.value()].users;
      return it->second;
    }
    NameId id;
    if (free_.empty()) {
      id = NameId(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back();
    } else {
      id = free_.back();
      free_.pop_back();
    }
    Entry& entry = entries_[id.value()];
    entry.text = std::make_unique<std::string>(text);
    entry.users = 1;
    ids_.emplace(*entry.text, id);
    return id;
  }

  void drop(NameId id) {
    if (id == NameId{}) return;
    Entry& entry = entries_[id.value()];
    GANTRY_ASSERT(entry.users > 0, "a name dropped more often than added");
    if (--entry.users > 0) return;
    ids_.erase(*entry.text);
    entry.text.reset();
    free_.push_back(id);
  }

  [[nodiscard]] const std::string& text(NameId id) const {
    static const std::string none;
    return id == NameId{} ? none : *entries_[id.value()].text;
  }
  [[nodiscard]] std::optional<NameId> find(std::string_view text) const {
    if (text.empty()) return NameId{};
    const auto it = ids_.find(text);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  struct Entry {
    std::unique_ptr<std::string> text;  // never moves, because ids_ points into it
    std::uint32_t users = 0;
  };
  std::vector<Entry> entries_;
  std::vector<NameId> free_;
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace gantry::core
