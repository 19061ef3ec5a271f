#include "noded/runtime/job_dir.h"

#include <time.h>

#include <charconv>
#include <ctime>

namespace gantry::runtime {

std::optional<AttemptKey> parse_job_name(std::string_view name) {
  const auto dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  const char* end = name.data() + name.size();
  const auto a = std::from_chars(name.data(), name.data() + dot, job);
  const auto b = std::from_chars(name.data() + dot + 1, end, attempt);
  if (a.ec != std::errc{} || a.ptr != name.data() + dot || b.ec != std::errc{} || b.ptr != end)
    return std::nullopt;
  return AttemptKey{JobId{job}, Attempt{attempt}};
}

namespace {
std::int64_t read_clock_us(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}
}  // namespace

Uptime uptime() {
  // The clocks are read in this order, so that a delay between the two readings never makes the
  // time asleep look shorter than before.
  const Duration awake{read_clock_us(CLOCK_MONOTONIC)};
  return {awake, Duration{read_clock_us(CLOCK_BOOTTIME)} - awake};
}

Instant wall_clock() {
  return {read_clock_us(CLOCK_REALTIME)};
}

std::string contact_text(const Contact& contact) {
  return std::to_string(contact.at.us) + " " + std::to_string(contact.boot.us) + " " +
         std::to_string(contact.fence_after.us) + "\n";
}

std::optional<Contact> parse_contact(std::string_view text) {
  Contact contact;
  for (std::int64_t* number : {&contact.at.us, &contact.boot.us, &contact.fence_after.us}) {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, *number);
    // The file is incomplete.
    if (error != std::errc{} || end == last) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  return contact;
}

Duration since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return Duration{std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000};
}

}  // namespace gantry::runtime
