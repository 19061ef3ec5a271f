// The test compares every message, field and enum value on the wire with tests/golden/messages.txt,
// so that a reviewer sees each change. GANTRY_UPDATE_GOLDEN=1 rewrites the file.
#include <doctest/doctest.h>

#include <fmt/core.h>

#include <set>
#include <sstream>

#include "common/codec/schema.h"
#include "common/proto/message_table.h"
#include "common/proto/messages.h"
#include "common/proto/step_io.h"
#include "tests/golden/golden.h"

namespace gantry {
namespace {

struct Message {
  std::string name;
  int number;
  std::string sender;
  std::string kind;
};

// Names the end of a connection that sends the message. On the wire, strangers and jobs are
// clients.
std::string end_of(const proto::Senders& from) {
  if (from.has(proto::Sender::node)) return "node";
  return from.has(proto::Sender::controller) ? "ctld" : "client";
}

std::vector<Message> messages() {
  return {
#define X(type, number, senders, kind, ...) \
  {#type, number, end_of(proto::kRowOf<proto::type>.from), #kind},
#include "common/proto/messages.def"
#undef X
  };
}

codec::Schema schema() {
  codec::Schema s;
#define X(type, ...) s.add<proto::type>();
#include "common/proto/messages.def"
#undef X
  s.add<proto::StepPermission>();  // this struct is sent signed, as bytes
  return s;
}

std::string listing() {
  const codec::Schema s = schema();
  std::string text = fmt::format("# protocol {}, oldest accepted {}\n\n", proto::kProtocolVersion,
                                 proto::kOldestProtocol);
  std::set<std::string> seen;
  for (const Message& m : messages()) {
    text += fmt::format("message {} {} from {}, {}\n{}\n", m.number, m.name, m.sender, m.kind,
                        s.structs().at(m.name));
    seen.insert(m.name);
  }
  for (const auto& [name, fields] : s.structs())
    if (!seen.contains(name)) text += fmt::format("struct {}\n{}\n", name, fields);
  for (const auto& [name, values] : s.enums()) text += fmt::format("enum {}\n{}\n", name, values);
  return text;
}

TEST_CASE("message numbers are unique, and so are field numbers and names within each struct") {
  std::set<int> numbers;
  for (const Message& m : messages()) CHECK_MESSAGE(numbers.insert(m.number).second, m.name);
  const codec::Schema s = schema();
  for (const auto& [name, fields] : s.structs()) {
    std::set<std::string> used;
    std::istringstream lines(fields);
    std::string number, field, rest;
    while (lines >> number >> field && std::getline(lines, rest)) {
      CHECK_MESSAGE(used.insert(number).second, name, " uses ", number, " twice");
      CHECK_MESSAGE(used.insert(field).second, name, " uses ", field, " twice");
      CHECK(std::stoi(number) >= 1);
    }
  }
}

TEST_CASE("the wire agrees with tests/golden/messages.txt") {
  test::check_golden("tests/golden/messages.txt", listing());
}

}  // namespace
}  // namespace gantry
