// The options by which a job asks for what its tenant keeps for it; see submit_option.h.
#pragma once

#include "cli/submit/job_setters.h"
#include "cli/submit/submit_option.h"

namespace gantry::cli {

inline constexpr SubmitOption kAccessOptionTable[] = {
    {.option = {.name = "identity",
                .arg = Arg::required,
                .value = "AUDIENCE,...",
                .help = "For each audience a signed token that says which job this is, in "
                        "/run/secrets/identity-AUDIENCE, renewed while the job runs",
                .set = call<job::set_identity>},
     .families = Families::gantry},
    {.option = {.name = "sandbox",
                .arg = Arg::required,
                .value = "LEVEL",
                .help = "How strong the wall around the job is: standard, hardened (fewer system "
                        "calls, less of the machine to be seen), gvisor (a kernel of its own in "
                        "user space) or vm; gvisor and vm where nodes have them",
                .set = call<job::set_sandbox>},
     .slurm = {.help = "How strong the wall around the job is: standard, hardened, gvisor or vm "
                       "(ours)"}},
    {.option = {.name = "secret",
                .arg = Arg::required,
                .value = "NAME[@VERSION][:FILE]",
                .help = "Put this secret of the tenant into /run/secrets/FILE (default: NAME); may "
                        "be given several times",
                .set = call<job::set_secret>},
     .families = Families::gantry},
};

}  // namespace gantry::cli
