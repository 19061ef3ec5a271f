// Events: the facts that make up State, in the order in which they became true. The journal is a
// list of these; apply() is the only reader. Kinds and field numbers are permanent, and
// tests/golden/events.txt lists them, so a change shows in review.
//
// An event says what was decided, with every number that the decision needed: apply() reads no
// configuration and no clock.
//
// Here is an event of any kind, without the structs of the kinds: EventRef refers to one, Event
// owns one. events.def lists the kinds; the structs are in events_job.h and its neighbours.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace gantry::core {

inline constexpr std::size_t kEventKinds = 128;  // size of tables indexed by kind

template <class E>
concept EventStruct = requires {
  requires E::kIsEvent;  // GANTRY_EVENT in event_fields.h
};

// A reference to an event, which must outlive it. Any event struct converts to it.
class EventRef {
 public:
  template <EventStruct E>
  EventRef(const E& event) : EventRef(E::kKind, &event) {}
  EventRef(int kind, const void* value) : kind_(kind), value_(value) {}

  [[nodiscard]] int kind() const { return kind_; }
  [[nodiscard]] const void* value() const { return value_; }  // the struct of that kind
  // Returns nullptr if the event is of another kind.
  template <EventStruct E>
  [[nodiscard]] const E* get_if() const {
    return kind_ == E::kKind ? static_cast<const E*>(value_) : nullptr;
  }

 private:
  int kind_;
  const void* value_;
};

// An event on the heap, or none (kind 0). Only what reads the journal needs to own events.
class Event {
 public:
  Event() = default;
  template <EventStruct E>
  explicit Event(std::unique_ptr<E> event)
      : kind_(E::kKind),
        value_(event.release(), [](void* value) { delete static_cast<E*>(value); }) {}

  [[nodiscard]] int kind() const { return kind_; }
  operator EventRef() const { return {kind_, value_.get()}; }

 private:
  int kind_ = 0;
  std::unique_ptr<void, void (*)(void*)> value_{nullptr, nullptr};
};

}  // namespace gantry::core
