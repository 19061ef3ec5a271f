#include "noded/runtime/contact.h"

#include <time.h>

#include <charconv>

namespace gantry::runtime {

std::string contact_text(const Contact& contact) {
  return std::to_string(contact.at.us) + " " + std::to_string(contact.boot.us) + " " +
         std::to_string(contact.fence_after.us) + "\n";
}

std::optional<Contact> parse_contact(std::string_view text) {
  Contact contact;
  for (std::int64_t* number : {&contact.at.us, &contact.boot.us, &contact.fence_after.us}) {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, *number);
    // The file was written only in part.
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
