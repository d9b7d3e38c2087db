      return pk('<BI7DOUBLES', 9, now -- ADMITTED of run_fast_end.lua
        , used@ + its_n@, its_w@
      )
    end
  end
end
