// A command under a Slurm name, run with and without each of its options, and what must differ
// then.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/slurm/frame.h"
#include "tests/cli/fake_controller.h"
#include "tests/places.h"
#include "tests/slurm/queue_of_slurm.h"

namespace gantry::test {

struct Shown {
  std::string_view option;
  std::vector<std::string> argv;  // after the name of the command
  // A text that the outcome has with the option and lacks without it. If the text begins with '!',
  // it is the other way round. "=" means that the option changes nothing, because the command does
  // what the option asks for anyway. "@FILE CASE" names the end-to-end test that shows the effect.
  std::string shows;
  std::map<std::string, std::string> more = {};  // environment variables
};

struct Bench {
  FakeController fake;
  std::string command;
  std::vector<std::string> usual;  // operands without which the command does nothing
  std::string input;

  template <class Request>
  std::string asked() {
    if (fake.count(static_cast<proto::MessageType>(proto::number_of<Request>)) == 0) return "";
    return codec::to_json(fake.last<Request>(), codec::JsonStyle::compact);
  }
  std::string outcome(const std::vector<std::string>& argv,
                      const std::map<std::string, std::string>& more) {
    std::vector<std::string> all{"slurm/" + command};
    all.insert(all.end(), argv.begin(), argv.end());
    all.insert(all.end(), usual.begin(), usual.end());
    const Run run = fake.run(all, input, more);
    std::string text = run.out + run.err;
    // The request ids and the submit lines of two runs always differ, so they are left out.
    if (command == "sbatch" || command == "srun") {
      proto::SubmitJob submit;
      if (fake.count(proto::MessageType::SubmitJob) > 0) submit = fake.last<proto::SubmitJob>();
      submit.request_id.clear();
      submit.spec.submit_line.clear();
      text += codec::to_json(submit, codec::JsonStyle::compact);
    }
    text += asked<proto::StepCreate>() + asked<proto::CancelJobs>() + asked<proto::ListJobs>() +
            asked<proto::QueryHistory>() + asked<proto::ListNodes>();
    return text;
  }
};

// Checks that the end-to-end test exists, that it has the case, and that the case uses the option.
inline void check_elsewhere(const Shown& one, const cli::Option& option) {
  const std::size_t blank = one.shows.find(' ');
  std::ifstream in(source_dir() + "/tests/e2e/" + one.shows.substr(1, blank - 1));
  std::ostringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  const std::size_t from = all.find("def " + one.shows.substr(blank + 1) + "(");
  REQUIRE(from != std::string::npos);
  const std::size_t end = all.find("\ndef ", from);
  const std::string body = all.substr(from, end == std::string::npos ? end : end - from);
  const bool spelled =
      body.find("--" + std::string(option.name)) != std::string::npos ||
      (option.letter != 0 && body.find(std::string("-") + option.letter) != std::string::npos);
  CHECK(spelled);
}

inline void check_options(Bench& bench, const std::vector<Shown>& all) {
  const cli::Command* command = cli::find_command(cli::slurm::slurm_commands(), bench.command);
  REQUIRE(command != nullptr);
  for (const cli::Option& option : command->options) {
    CAPTURE(bench.command);
    const std::string name(option.name);
    CAPTURE(name);
    const auto rows = std::count_if(all.begin(), all.end(),
                                    [&](const Shown& one) { return one.option == option.name; });
    CHECK((rows > 0) == option.refused.empty());
  }
  for (const Shown& one : all) {
    const std::string name(one.option);
    CAPTURE(name);
    const auto option = std::find_if(command->options.begin(), command->options.end(),
                                     [&](const cli::Option& o) { return o.name == one.option; });
    REQUIRE(option != command->options.end());
    if (one.shows.starts_with('@')) {
      check_elsewhere(one, *option);
      continue;
    }
    const std::string with = bench.outcome(one.argv, one.more);
    const std::string without = bench.outcome({}, one.more);
    CAPTURE(with);
    if (one.shows == "=") {
      CHECK(with == without);
    } else if (one.shows.starts_with('!')) {
      CHECK(without.find(one.shows.substr(1)) != std::string::npos);
      CHECK(with.find(one.shows.substr(1)) == std::string::npos);
    } else {
      CHECK(without.find(one.shows) == std::string::npos);
      CHECK(with.find(one.shows) != std::string::npos);
    }
  }
}

}  // namespace gantry::test
