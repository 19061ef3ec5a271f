// Tests the option parser and the reading of #SBATCH lines.
#include <doctest/doctest.h>

#include "cli/option.h"
#include "cli/submit/script.h"

using namespace gantry;
using namespace gantry::cli;

namespace {

struct Target {
  std::string name;
  std::vector<std::string> users;
  bool header = true;
  bool all = false;
  std::string format;
  std::string nice = "unset";
};

constexpr Option kOptions[] = {
    {.name = "all", .letter = 'a', .set = put<&Target::all>},
    {.name = "format",
     .letter = 'o',
     .arg = Arg::required,
     .set = put<&Target::format>,
     .env = "FORMAT"},
    {.name = "job-name", .letter = 'J', .arg = Arg::required, .set = put<&Target::name>},
    {.name = "nice", .arg = Arg::optional, .set = put<&Target::nice>},
    {.name = "noheader",
     .letter = 'h',
     .set = put_value<&Target::header, false>,
     .env = "NOHEADER"},
    {.name = "user", .letter = 'u', .arg = Arg::required, .set = put<&Target::users>},
    {.name = "qos", .letter = 'q', .refused = "there are no QOS"},
};

Target parse(std::vector<std::string> args, std::vector<std::string>* operands = nullptr,
             bool stop = false) {
  auto parsed = parse_options(kOptions, args, stop);
  REQUIRE_MESSAGE(parsed, parsed.error().message);
  Target target;
  REQUIRE(apply_options(parsed->given, &target));
  if (operands != nullptr) *operands = parsed->operands;
  return target;
}

std::vector<std::string> directives(const std::string& text) {
  const auto given = script_options(text, "s", kOptions);
  if (!given) return {"error: " + given.error().message};
  std::vector<std::string> out;
  for (const Given& g : *given)
    out.push_back(shown_name(*g.option) + (g.value.empty() ? "" : "=" + g.value) + "@" + g.place);
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("every way to spell an option and its value is understood") {
  CHECK(parse({"--job-name=x"}).name == "x");
  CHECK(parse({"--job-name", "x"}).name == "x");
  CHECK(parse({"-Jx"}).name == "x");
  CHECK(parse({"-J", "x"}).name == "x");
  CHECK(parse({"--job-name=a=b"}).name == "a=b");
  CHECK(parse({"--job-name="}).name.empty());
  CHECK(parse({"-J", "-u"}).name == "-u");  // As with getopt, an argument may look like an option.
  const Target joined = parse({"-aho", "FMT"});
  CHECK(joined.all);
  CHECK_FALSE(joined.header);
  CHECK(joined.format == "FMT");
  CHECK(parse({"-ahoFMT"}).format == "FMT");
  CHECK(parse({"-u", "a,b", "-uc", "--user=,d,"}).users == Words{"a", "b", "c", "d"});
}

TEST_CASE("an option with an optional argument takes it only after =") {
  CHECK(parse({"--nice"}).nice.empty());
  CHECK(parse({"--nice=5"}).nice == "5");
  Words operands;
  CHECK(parse({"--nice", "5"}, &operands).nice.empty());
  CHECK(operands == Words{"5"});
}

TEST_CASE("operands may stand between options; for scripts the options end at the first operand") {
  Words operands;
  CHECK(parse({"a", "-h", "b"}, &operands).header == false);
  CHECK(operands == Words{"a", "b"});
  CHECK(parse({"-a", "job.sh", "-h", "--x"}, &operands, true).header);
  CHECK(operands == Words{"job.sh", "-h", "--x"});
  CHECK(parse({"-a", "--", "-h"}, &operands).header);
  CHECK(operands == Words{"-h"});
  parse({"-"}, &operands);
  CHECK(operands == Words{"-"});
}

TEST_CASE("a later option overrides an earlier one, and a refused option says why") {
  CHECK(parse({"-J", "x", "--job-name=y"}).name == "y");
  const Words args{"-q", "high"};
  const auto parsed = parse_options(kOptions, args, false);
  REQUIRE(parsed);
  Target target;
  const auto done = apply_options(parsed->given, &target);
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "--qos is not supported: there are no QOS");
  CHECK(done.error().code == ErrorCode::unsupported);
}

TEST_CASE("directives are read from the head of a script, with quotes and comments as in Slurm") {
  CHECK(directives("#!/bin/sh\n#SBATCH -J x\n#GANTRY --nice\n") ==
        Words{"--job-name=x@s:2", "--nice@s:3"});
  CHECK(directives("#!/bin/sh\n\n# text\n   \n#SBATCH -a\ntrue\n#SBATCH -h\n") ==
        Words{"--all@s:5"});
  CHECK(directives("#!/bin/sh\n##SBATCH -a\n#SBATCHX -a\n# SBATCH -a\n#SBATCH\n").empty());
  CHECK(directives("#!/bin/sh\n#SBATCH --job-name      x\n") == Words{"--job-name=x@s:2"});
  CHECK(directives("#!/bin/sh\n#SBATCH\t-J x -a --user=u # note -h\n") ==
        Words{"--job-name=x@s:2", "--all@s:2", "--user=u@s:2"});
  CHECK(directives("#!/bin/sh\n#SBATCH --job-name=\"a b\" -u 'c # d'\n") ==
        Words{"--job-name=a b@s:2", "--user=c # d@s:2"});
  CHECK(directives("#!/bin/sh\n#SBATCH -J a#b\n") == Words{"--job-name=a#b@s:2"});
  CHECK(directives("#!/bin/sh\n#SBATCH -J a\\ b\n") == Words{"--job-name=a b@s:2"});
  CHECK(directives("#!/bin/sh\n#SBATCH -J 'a\\b'\n") == Words{"--job-name=a\\b@s:2"});
  CHECK(directives("#!/bin/sh\n#SBATCH --no-such\n") ==
        Words{"error: s:2: unrecognized option '--no-such'"});
  CHECK(directives("#!/bin/sh\n#SBATCH -J x") ==
        Words{"--job-name=x@s:2"});  // The last line has no newline.
}

TEST_CASE("a script must begin with #! and have no carriage returns") {
  CHECK(check_script("#!/bin/sh\n"));
  CHECK_FALSE(check_script(""));
  CHECK_FALSE(check_script(" #!/bin/sh\n"));
  CHECK_FALSE(check_script("#!/bin/sh\r\n"));
  CHECK(check_script(script_of_wrap("echo $X")));
}
